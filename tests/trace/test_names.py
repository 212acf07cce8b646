"""What names say: calls, kernels of communication libraries, annotations."""

from __future__ import annotations

import pytest

from profiler.trace import names
from profiler.trace.names import Call


@pytest.mark.parametrize(("call", "names_of_it"), [
    (Call.LAUNCH, ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernelEx", "hipExtModuleLaunchKernel",
                   "cudaLaunchCooperativeKernel", "urEnqueueKernelLaunch")),
    (Call.GRAPH, ("cudaGraphLaunch", "hipGraphLaunch")),
    (Call.MEMCPY, ("cudaMemcpyAsync", "cuMemcpyHtoDAsync_v2", "hipMemcpyWithStream", "urEnqueueUSMMemcpy",
                   "zeCommandListAppendMemoryCopy")),
    (Call.MEMSET, ("cudaMemsetAsync", "cuMemsetD8Async", "urEnqueueUSMFill")),
    (Call.ALLOCATOR, ("cudaMalloc", "cudaFreeAsync", "cuMemCreate", "hipHostMalloc", "urUSMDeviceAlloc",
                      "urUSMFree", "zeMemAllocDevice")),
    (Call.SYNC, ("cudaStreamSynchronize", "cuCtxSynchronize", "hipDeviceSynchronize", "urEventWait",
                 "urQueueFinish", "zeCommandQueueSynchronize")),
    (Call.WAIT, ("cudaStreamWaitEvent", "cuStreamWaitEvent")),
    (Call.RECORD, ("cudaEventRecord", "hipEventRecord")),
    (Call.OTHER, ("cudaEventQuery", "cudaMemGetInfo", "cuLaunchHostFunc", "cudaGraphInstantiate",
                  "urEnqueueEventsWait")),
])
def test_what_a_call_does(call: Call, names_of_it: tuple[str, ...]) -> None:
    assert {name: names.call(name) for name in names_of_it} == dict.fromkeys(names_of_it, call)


@pytest.mark.parametrize("name", [
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclSymDevKernel_AllGather",
    "mscclKernel_Sum_half_Simple_false(mscclWork)", "mscclpp::allreduce7", "rcclGenericKernel",
    "void vllm::cross_device_reduce_2stage<__half, 8>", "hcclAllReduce",
    "void tensorrt_llm::kernels::twoShotAllReduceKernel<half, 2>", "two_shot_all_reduce_kernel_inplace",
    "multimem_all_reduce_kernel", "void deep_ep::intranode::dispatch<4, 768>", "nvshmemi_transfer"])
def test_kernels_of_communication_libraries(name: str) -> None:
    assert names.is_communication(name)


@pytest.mark.parametrize("name", [
    "void at::native::reduce_kernel<512, 1>", "splitKreduce_kernel", "ampere_sgemm_128x64_nn",
    "void at::native::(anonymous namespace)::deep_episode_kernel", "triton_red_fused_add_0"])
def test_kernels_that_compute(name: str) -> None:
    assert not names.is_communication(name)


@pytest.mark.parametrize(("name", "named"), [
    ("save_checkpoint", True), ("autosave", True), ("AutoCheckpoint", True), ("wandb_log", True),
    ("on_validation_end", True), ("evaluator", True), ("Trainer.save_model", True), ("gc.collect", True),
    ("compute_logits", False), ("retrieval", False), ("invalidate", False), ("savepoint", False)])
def test_annotations_that_say_what_they_are(name: str, named: bool) -> None:
    assert names.is_named_work(name) is named


@pytest.mark.parametrize("name", [
    "ProfilerStep#4", "Optimizer.step#SGD.step", "DistributedDataParallel.forward", "FSDP::pre_forward",
    "nccl:all_reduce", "xccl:all_reduce", "gloo:all_gather", "## Call CompiledFxGraph x ##", "forward",
    "Torch-Compiled Region: 0/0", "entire_frame_compile (dynamo_timed)"])
def test_what_frameworks_write_themselves(name: str) -> None:
    assert names.is_framework(name)


@pytest.mark.parametrize("name", ["evaluate", "my forward", "step", "data", "compute_metrics"])
def test_what_users_write(name: str) -> None:
    assert not names.is_framework(name)

"""The catalog: what is listed, what `--set` accepts, and that listing needs no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from profiler import catalog
from profiler.catalog import FaultInfo, Gpu, Machine, WorkloadInfo
from profiler.cli import main
from profiler.errors import UsageError
from profiler.paths import entry_point

NAMES = ["input_starved", "image_classification", "language_model"]


@pytest.fixture
def images() -> WorkloadInfo:
    return catalog.get("image_classification")


@pytest.mark.parametrize("info", catalog.workloads(), ids=lambda info: info.name)
def test_each_workload_fulfils_the_protocol(info: WorkloadInfo) -> None:
    module = catalog.load(info.name)
    assert info.title and info.group and info.summary and len(info.doc) > len(info.summary)
    assert (Path(__file__).parent.parent / "assets" / "icons" / f"{info.icon}.svg").is_file()
    assert info.unit in ("samples", "tokens")
    assert list(info.sizes) == ["smallest", "typical", "stress"]
    assert callable(module.run)
    assert bool(info.data) == hasattr(module, "check_data")
    for size, changes in info.sizes.items():
        assert catalog.check(info, {**info.defaults(), **changes}) == {}, size
    healthy = {**info.defaults(), **info.sizes["smallest"], "device": "cpu", **info.healthy}
    assert catalog.check(info, healthy) == {} and set(info.healthy) <= set(info.defaults())
    assert not any(healthy[fault] for fault in info.faults)
    for setting in info.settings:
        assert setting.label and setting.help and setting.group in catalog.GROUPS
        assert setting.type in ("int", "float", "str", "bool", "choice", "path")
        if setting.type in ("int", "float"):
            assert setting.minimum <= setting.default <= setting.maximum


def test_workloads_are_listed_by_task() -> None:
    listed = [(info.group, info.title) for info in catalog.workloads()]
    assert [info.name for info in catalog.workloads()][:2] == ["input_starved", "image_classification"]
    groups = list(dict.fromkeys(group for group, _ in listed))
    assert [group for group, _ in listed] == sorted((g for g, _ in listed), key=groups.index)
    assert all(0 < len(info.summary) <= 40 for info in catalog.workloads())  # whole in a narrow gallery


def test_settings_are_in_the_order_of_the_form(images: WorkloadInfo) -> None:
    names = [s.name for s in images.settings]
    assert names[:3] == ["model", "images", "image_size"]
    assert names[-len(images.faults) :] == list(images.faults) == sorted(images.faults)
    groups = [s.group for s in images.settings]
    assert groups == sorted(groups, key=catalog.GROUPS.index)


VERDICTS = {"input_bound", "transfer_bound", "sync_bound", "launch_bound", "host_bound", "allocator_bound",
            "communication_bound", "compute_bound", "unknown"}
STAGES = {"data", "h2d", "forward", "backward", "optimizer", "other"}


@pytest.mark.parametrize("fault", catalog.faults(), ids=lambda fault: fault.name)
def test_each_fault_fulfils_the_protocol(fault: FaultInfo) -> None:
    assert fault.title and fault.doc.startswith(fault.summary)
    assert {fault.verdict, fault.on_cpu} <= VERDICTS and fault.stage in STAGES
    assert fault.needs in ("cpu", "cuda", "ranks") and (fault.needs == "cuda") == (not fault.factor)
    assert fault.factor is None or fault.factor[0] <= fault.factor[1]
    for word in (fault.verdict, fault.on_cpu, fault.rule, "Remedy"):
        assert word in fault.doc
    for name in fault.workloads:
        info = catalog.get(name)
        dial = info.setting(fault.name)
        assert (dial.default, dial.minimum, dial.group, dial.help) == (0.0, 0.0, "Faults", fault.summary)
        if fault.remedy:
            catalog.parse_value(info.setting(fault.remedy[0]), str(fault.remedy[1]).lower())
    info = catalog.get(fault.workloads[0])
    control = {**info.defaults(), **info.sizes["smallest"], **fault.control}
    assert catalog.check(info, control) == {}
    assert catalog.check(info, {**control, **fault.faulty, fault.name: 1.0}) == {}


def test_a_fault_is_named_like_a_workload(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workloads", "slow_storage"]) == 0
    out = capsys.readouterr().out
    assert "Healthy control" in out and "--set slow_storage=1" in out and "input_bound" in out
    assert main(["workloads", "slow_storage", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["workloads"] == [] and [fault["name"] for fault in told["faults"]] == ["slow_storage"]
    assert main(["workloads", "no_such"]) == 2
    assert "there is no workload or fault no_such" in capsys.readouterr().err
    assert main(["workloads", "slow-storage"]) == 2
    assert "Did you mean slow_storage" in capsys.readouterr().err
    with pytest.raises(UsageError, match="Did you mean slow_storage"):
        catalog.fault("slow-storage")


def test_listing_as_json_imports_no_torch() -> None:
    code = (f"import sys; sys.path.insert(0, {str(entry_point().parent)!r})\n"
            "from profiler.cli import main\n"
            "assert main(['workloads', '--json']) == 0\n"
            "assert not {'torch', 'torchvision', 'PIL', 'numpy'} & set(sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    listed = told["workloads"]
    assert {"verdict", "rule", "remedy", "needs", "stage", "factor", "doc"} <= told["faults"][0].keys()
    assert {w["name"] for w in listed} >= set(NAMES)
    batch = next(s for s in listed[0]["settings"] if s["name"] == "batch_size")
    assert batch.keys() >= {"type", "default", "minimum", "maximum", "choices", "help", "unit", "group"}


@pytest.mark.parametrize("argv", [["workloads"], *(["workloads", name] for name in NAMES)])
def test_listing_for_people(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "batch_size" in out and "size=smallest" in out
    assert argv[-1] == "input_starved" or "slow_storage" in out


def test_values_are_typed(images: WorkloadInfo) -> None:
    values = catalog.parse_settings(
        images, ["batch-size=1_0", "workers=2", "pin_memory=yes", "precision=bfloat16", "model=resnet18"])
    assert values == {**images.defaults(), "batch_size": 10, "workers": 2, "pin_memory": True,
                      "precision": "bfloat16", "model": "resnet18"}
    starved = catalog.get("input_starved")
    assert catalog.parse_settings(starved, ["latency_ms=2"])["latency_ms"] == 2.0


def test_a_size_is_a_preset_under_single_settings(images: WorkloadInfo) -> None:
    values = catalog.parse_settings(images, ["steps=7", "size=smallest"])
    assert values["steps"] == 7 and values["batch_size"] == images.sizes["smallest"]["batch_size"]


@pytest.mark.parametrize(("pairs", "says"), [
    (["wrokers=2"], "Did you mean workers"),
    (["zzz=2"], "It has"),
    (["workers"], "name=value"),
    (["workers=two"], "not a whole number"),
    (["workers="], "not a whole number"),
    (["workers=-1"], "0 to 256"),
    (["batch_size=0"], "1 to 65536"),
    (["batch_size=1e3"], "not a whole number"),
    (["pin_memory=maybe"], "true or false"),
    (["model=resnet19"], "resnet18, resnet34"),
    (["precision=fp8"], "float32, tf32"),
    (["size=huge"], "smallest"),
    (["sync_every_stp=1"], "Did you mean sync_every_step"),
    (["prefetch_factor=4"], "needs 1 worker or more"),
    (["persistent_workers=true"], "needs 1 worker or more"),
    (["device=cpu", "precision=float16"], "needs a GPU"),
    (["device=cpu", "precision=tf32"], "needs a GPU"),
    (["device=gpu"], "auto, cpu, cuda"),
    (["device=cuda:x"], "auto, cpu, cuda"),
])
def test_what_cannot_be_used_is_told_in_one_line(images: WorkloadInfo, pairs: list[str], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        catalog.parse_settings(images, pairs)
    assert says in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "x"])
def test_a_float_is_finite_and_in_range(text: str) -> None:
    with pytest.raises(UsageError):
        catalog.parse_settings(catalog.get("input_starved"), [f"latency_ms={text}"])


def test_unknown_workload_names_the_close_ones() -> None:
    with pytest.raises(UsageError, match="Did you mean image_classification"):
        catalog.get("image-clasification")
    with pytest.raises(UsageError, match="There are"):
        catalog.get("_common")


def test_check_tells_every_reason_and_greying_needs_no_error(images: WorkloadInfo) -> None:
    values = images.defaults()
    assert catalog.check(images, values) == {}
    off = catalog.not_applicable(images, values)
    assert set(off) - set(images.faults) == {"prefetch_factor", "persistent_workers"}
    assert "1 worker" in off["few_workers"] and "torchrun" in off["uneven_ranks"] and "gc_pauses" not in off
    assert "needs a GPU" in catalog.not_applicable(images, values, Machine(()))["large_copies"]
    assert "workers" in catalog.advise(images, values)
    bad = catalog.check(images, {**values, "batch_size": 0, "workers": 999})
    assert set(bad) == {"batch_size", "workers"}
    assert "pin_memory" in catalog.advise(images, {**values, "pin_memory": True, "device": "cpu"})
    assert "prefetch_factor" not in catalog.not_applicable(images, {**values, "workers": 1})


def test_a_fault_that_cannot_act_says_where_it_can() -> None:
    with pytest.raises(UsageError, match=r"cannot act in language_model\. It acts in image_classification, "):
        catalog.parse_settings(catalog.get("language_model"), ["epoch_start_stall=1"])


def test_other_spellings_of_a_choice(images: WorkloadInfo) -> None:
    for text, value in (("true", "default"), ("False", "off"), ("max-autotune", "max-autotune")):
        assert catalog.parse_settings(images, [f"compile={text}"])["compile"] == value


@pytest.mark.parametrize(("machine", "changes", "field", "says"), [
    (Machine(()), {"device": "cuda:0"}, "device", "no GPU here"),
    (Machine(()), {"precision": "float16"}, "precision", "needs a GPU"),
    (Machine(()), {"cuda_graphs": True}, "cuda_graphs", "needs a GPU"),
    (Machine((Gpu("Tesla T4", 7.5),)), {"precision": "tf32"}, "precision", "Tesla T4 has no tf32"),
    (Machine((Gpu("Tesla T4", 7.5),)), {"device": "cuda:1"}, "device", "no cuda:1"),
    (Machine((Gpu("H200", 9.0), Gpu("H200", 9.0))), {"device": "cuda:2"}, "device", "cuda:0 to cuda:1"),
    (Machine((Gpu("Tesla T4", 7.5),)), {"device": "cpu", "precision": "tf32"}, "precision", "needs a GPU"),
    (Machine((Gpu("H200", 9.0),)), {"precision": "tf32"}, "", ""),
    (Machine((Gpu("some GPU", None),)), {"precision": "tf32"}, "", ""),
    (Machine(), {"precision": "float16", "device": "cuda:3"}, "", ""),  # nobody has looked yet
    (Machine(()), {"device": "gpu"}, "device", "none of auto"),
])
def test_what_a_machine_lacks(
    images: WorkloadInfo, machine: Machine, changes: dict[str, object], field: str, says: str
) -> None:
    problems = catalog.check(images, {**images.defaults(), **changes}, machine)
    assert set(problems) == ({field} if field else set())
    assert says in problems.get(field, "")


def test_bfloat16_by_emulation_is_told(images: WorkloadInfo) -> None:
    values = {**images.defaults(), "precision": "bfloat16"}
    assert "emulates" in catalog.advise(images, values, Machine((Gpu("Tesla T4", 7.5),)))["precision"]
    assert "precision" not in catalog.advise(images, values, Machine((Gpu("H200", 9.0),)))


def test_command_carries_what_differs(images: WorkloadInfo, tmp_path: Path) -> None:
    values = catalog.parse_settings(images, ["workers=2", "channels_last=true", "seed=3"])
    argv = catalog.workload_command(images.name, values, tmp_path)
    assert argv[1:5] == ["-P", str(entry_point()), "workload-run", images.name]
    assert "-E" not in argv  # the probe enters by PYTHONPATH
    pairs = [argv[i + 1] for i, word in enumerate(argv) if word == "--set"]
    assert sorted(pairs) == ["channels_last=true", "seed=3", "workers=2"]
    assert catalog.parse_settings(images, pairs) == values
    assert argv[-1] == f"--data={tmp_path}"
    assert catalog.workload_command(images.name, images.defaults())[-1] == images.name


def test_work_per_sample() -> None:
    assert catalog.work_per_sample("language_model", {"context": 64}) == ("tokens", 64)
    assert catalog.work_per_sample("image_classification", {}) == ("samples", 1)


def test_data_is_looked_at_before_anything_starts(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "notes.doc").write_text("no image")
    for name, path, says in [
        ("image_classification", tmp_path / "absent", "No such file or directory"),
        ("image_classification", empty / "notes.doc", "Not a directory"),
        ("image_classification", empty, "there are no files"),
        ("language_model", empty, "there are no files"),
        ("language_model", tmp_path / "absent", "No such file or directory"),
        ("input_starved", empty, "takes no --data"),
    ]:
        with pytest.raises(UsageError, match=says) as caught:
            catalog.check_data(name, path)
        assert "\n" not in str(caught.value)
    catalog.check_data("language_model", empty / "notes.doc")  # one file may have any name
    (empty / "notes.doc").write_text("")
    with pytest.raises(UsageError, match="is empty"):
        catalog.check_data("language_model", empty / "notes.doc")
    (empty / "A.JPG").write_bytes(b"\xff")
    catalog.check_data("image_classification", empty)


def test_folder_without_permission_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = sys.modules[catalog.load("image_classification").check_folder.__module__]

    def deny(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(store.os, "scandir", deny)
    with pytest.raises(UsageError, match=r"cannot read the data folder .*: Permission denied"):
        catalog.check_data("image_classification", tmp_path)


def test_errors_of_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for argv in (["workload-run", "no_such"], ["workload-run", "language_model", "--set", "steps=0"],
                 ["workload-run", "image_classification", "--data", str(tmp_path / "absent")]):
        assert main(argv) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and captured.err.count("\n") == 1 and captured.err.startswith("stepscope: ")

"""Tensors that say they are on a GPU: copies to them and reads from them are seen, until a compiler comes."""

import json
import sys
import time
import traceback

import torch
from torch import nn
from torchvision import tv_tensors

probe = sys.modules["_stepscope_probe"]._probe
plain_to, plain_item = torch.Tensor.to, torch.Tensor.item
kept = tv_tensors.Image(torch.zeros(3, 4, 4))


class Pretended(torch.Tensor):
    """On the GPU as far as it says; its copies and reads take 5 ms."""

    is_cuda = True

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__name__ in ("copy_", "tolist"):
            time.sleep(0.005)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def names_us(call):
    """Whether the traceback of a call that fails shows a frame of the probe."""
    try:
        call()
    except Exception:
        return "_stepscope_probe" in traceback.format_exc()
    raise AssertionError("did not fail")


probe.hooks.append(probe.tensors)
probe.tensors.enable()
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
static = torch.zeros(2, 8).as_subclass(Pretended)
data = torch.utils.data.TensorDataset(torch.randn(20, 8))
for (x,) in torch.utils.data.DataLoader(data, batch_size=2):
    static.copy_(x)
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
    static.tolist()
    static[:, 0].as_subclass(Pretended).tolist()
    assert (loss.item() > 0) == bool(loss > 0)  # these are on the CPU
    assert x.to(torch.float64).dtype is torch.float64
    assert bool(x.to("cpu", non_blocking=True) is x)
assert type(kept.to(torch.float64)) is tv_tensors.Image  # it keeps a table of the methods that do
told = [names_us(call) for call in (lambda: x.to("nowhere"), lambda: static.copy_(torch.ones(3, 3)), x.item,
                                    static.item)]
patched = plain_to == torch.Tensor.to and torch.Tensor.to is not plain_to and "to" in vars(torch.Tensor)
torch.compile(model, backend="eager")(torch.zeros(1, 8))
restored = torch.Tensor.to is plain_to and torch.Tensor.item is plain_item
print(json.dumps({"patched": patched, "restored": restored,
                  "left": sorted(n for n in ("to", "cuda", "item", "copy_") if n in vars(torch.Tensor)),
                  "told": told, "arrival": probe.loop.arrival}))

"""With which precision the loop computes: settings of torch, types of weights, autocast. Sent on change."""

import json
from itertools import chain, islice

import torch

_EVERY_NS = 1_000_000_000
_MOST = 100_000  # parameters of a model that are looked at


class Numerics:
    """`autocast` is what was on when a model was called while models were looked for."""

    name = "numerics"

    def __init__(self):
        self.at = 0  # of the next look
        self._sent = None
        self._autocast = None
        self._weights = {}
        self._convolutions = None

    def called(self):
        """A model is about to be called by the loop."""
        self._autocast = _autocast() or self._autocast

    def models(self, modules):
        """The loop's models are known: how many weights they have of each type, and whether they convolve."""
        self._weights, self._convolutions, self.at = {}, None, 0
        try:
            weights, convolutions = {}, False
            for parameter in islice(chain.from_iterable(m.parameters() for m in modules), _MOST):
                kind = _plain(parameter.dtype)
                weights[kind] = weights.get(kind, 0) + parameter.numel()
                convolutions = convolutions or 4 <= parameter.dim() <= 5  # other weights have fewer
            self._weights, self._convolutions = weights, convolutions
        except Exception:  # parameters of other makes may lack a size
            pass

    def records(self, now):
        if now < self.at:
            return
        self.at = now + _EVERY_NS
        said = {"matmul_precision": _matmul_precision(), "cudnn_tf32": _cudnn_tf32(),
                "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
                "autocast": self._autocast, "weights": self._weights,
                "convolutions": self._convolutions}
        if said != self._sent:
            self._sent = dict(said)
            yield json.dumps(["numerics", said]) + "\n"


def _autocast():
    """The type that autocast computes in, None where it is off. Older versions of torch ask otherwise."""
    try:
        for kind in ("cuda", "cpu"):
            if torch.is_autocast_enabled(kind):
                return _plain(torch.get_autocast_dtype(kind))
    except (TypeError, AttributeError):
        if torch.is_autocast_enabled():
            return _plain(torch.get_autocast_gpu_dtype())
        if torch.is_autocast_cpu_enabled():
            return _plain(torch.get_autocast_cpu_dtype())
    return None


def _matmul_precision():
    """highest, high or medium. torch refuses to say where its older and newer settings were mixed."""
    try:
        return torch.get_float32_matmul_precision()
    except Exception:
        return {"ieee": "highest", "tf32": "high"}.get(torch.backends.cuda.matmul.fp32_precision)


def _cudnn_tf32():
    try:
        return bool(torch.backends.cudnn.allow_tf32)
    except Exception:
        return torch.backends.cudnn.conv.fp32_precision == "tf32"


def _plain(dtype):
    return str(dtype).replace("torch.", "")

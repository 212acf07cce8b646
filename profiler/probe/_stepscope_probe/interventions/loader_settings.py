"""Settings of loaders as an experiment wants them."""

import functools
import inspect

from ..hook import hide_frames
from .base import LOADER, Intervention


class LoaderSettings(Intervention):
    """Changes the arguments with which any DataLoader is made; each change is told."""

    name = "loader_settings"
    why = "no DataLoader was made"

    def install(self):
        from torch.utils.data import DataLoader, get_worker_info

        hook, original = self, DataLoader.__init__
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(self, *args, **kwargs):
            changed = None
            try:
                if not hook.failed and get_worker_info() is None:
                    changed = hook.change(signature, self, args, kwargs)
            except Exception as error:
                hook.fail(error)
            try:
                if changed is None:
                    original(self, *args, **kwargs)
                else:
                    original(*changed.args, **changed.kwargs)
            except BaseException as error:
                hide_frames(error)
                raise

        self.patch(DataLoader, "__init__", __init__)

    def change(self, signature, loader, args, kwargs):
        """The bound arguments with our settings, or None when nothing changes."""
        try:
            bound = signature.bind(loader, *args, **kwargs)
        except TypeError:
            return None  # the original tells the user
        bound.apply_defaults()
        now = bound.arguments
        before = {k: now[k] for k in LOADER if k in now}
        now.update({k: v for k, v in self.value.items() if k in now})
        workers = now.get("num_workers", 0)
        if not workers:
            for name, value in (("prefetch_factor", None), ("persistent_workers", False),
                                ("multiprocessing_context", None), ("timeout", 0)):
                if name in now:
                    now[name] = value
        after = {k: now[k] for k in before}
        self.done = True  # also when it was so before
        if after == before:
            return None
        self.probe.event("intervention", "info", "DataLoader made with "
                         + ", ".join("%s %s" % (k, after[k]) for k in after if after[k] != before[k]),
                         {"from": _plain(before), "to": _plain(after)})
        return bound


def _plain(settings):
    return {k: v if isinstance(v, (bool, int, float, type(None))) else str(v) for k, v in settings.items()}

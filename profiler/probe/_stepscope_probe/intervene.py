"""Settings of loaders as an experiment wants them, with the loop's code untouched."""

import functools
import inspect

from .hook import Hook, hide_frames

LOADER = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers")


class InterveneHook(Hook):
    """Changes the arguments with which any DataLoader is made; each change is told."""

    name = "intervene"

    def __init__(self, probe, wanted):
        Hook.__init__(self, probe)
        self.wanted = {k: wanted[k] for k in LOADER if wanted.get(k) is not None}
        unknown = sorted(set(wanted) - set(LOADER))
        if unknown:
            probe.event("intervention_unknown", "warning", "Not done here: " + ", ".join(unknown),
                        {"settings": unknown})

    def install(self):
        if not self.wanted:
            return
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
        now.update({k: v for k, v in self.wanted.items() if k in now})
        workers = now.get("num_workers", 0)
        if not workers:
            for name, value in (("prefetch_factor", None), ("persistent_workers", False),
                                ("multiprocessing_context", None), ("timeout", 0)):
                if name in now:
                    now[name] = value
        after = {k: now[k] for k in before}
        if after == before:
            return None
        self.probe.event("intervention", "info", "DataLoader made with "
                         + ", ".join("%s %s" % (k, after[k]) for k in after if after[k] != before[k]),
                         {"from": _plain(before), "to": _plain(after)})
        return bound


def _plain(settings):
    return {k: v if isinstance(v, (bool, int, float, type(None))) else str(v) for k, v in settings.items()}

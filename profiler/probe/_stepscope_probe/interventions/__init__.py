"""What an experiment changes in a program, its code untouched: the hooks of the settings that there are."""

from ..hook import Hook
from ..wanted import SETTINGS, refused
from .base import LOADER


class Refused(Hook):
    """Tells of settings that are unknown or have a value that cannot be."""

    name = "intervene"
    innermost = True

    def __init__(self, probe, unknown, wrong):
        Hook.__init__(self, probe)
        self.unknown, self.wrong = unknown, wrong

    def install(self):
        if self.unknown:
            self.probe.event("intervention_unknown", "warning", "Not done here: " + ", ".join(self.unknown),
                             {"settings": self.unknown})
        for name, value in self.wrong:
            why = "%r is not %s" % (value, SETTINGS[name][0])
            self.probe.event("intervention_failed", "warning", "%s was not applied: %s" % (name, why),
                             {"setting": name, "reason": why})
        self.unknown, self.wrong = [], []

    def finish(self):
        pass


def interventions(probe, wanted):
    """The hooks for what is wanted, such as {"num_workers": 4, "cached_batch": true}; null is not wanted."""
    wanted = {name: value for name, value in wanted.items() if value is not None}
    unknown, wrong = refused(wanted)
    good = {name: value for name, value in wanted.items() if name in SETTINGS and (name, value) not in wrong}
    hooks = [Refused(probe, unknown, wrong)] if unknown or wrong else []
    return hooks + _hooks(probe, good) if good else hooks


def _hooks(probe, wanted):
    # Imported here: a program in which nothing is changed has none of it.
    from .forward_alone import ForwardAlone
    from .kept_batch import KeptBatch
    from .kept_on_device import DeviceBatch
    from .loader_alone import LoaderAlone
    from .loader_settings import LoaderSettings
    from .torch_settings import SWITCHES, TorchSetting

    inference = bool(wanted.get("inference"))
    hooks = [TorchSetting(probe, name, wanted[name]) for name in SWITCHES if name in wanted]
    loader = {name: wanted[name] for name in LOADER if name in wanted}
    if loader:
        hooks.append(LoaderSettings(probe, loader))
    if wanted.get("forward_only"):
        hooks.append(ForwardAlone(probe, True))
    if wanted.get("device_batch"):
        hooks.append(DeviceBatch(probe, True, inference))
    elif wanted.get("cached_batch"):
        hooks.append(KeptBatch(probe, True, inference))
    if wanted.get("loader_only"):
        hooks.append(LoaderAlone(probe, wanted["loader_only"], inference))
    return hooks

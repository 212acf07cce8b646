"""What interventions have in common.

Each tells by one event when it was applied ("intervention"), and at the end when it
could not be ("intervention_failed").
"""

from ..hook import Hook

LOADER = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers")


class Intervention(Hook):
    """Base of all. `name` is the setting's; `why` says what kept it from being applied."""

    innermost = False  # whether the probe's own hooks go around it
    why = "nothing came to it"

    def __init__(self, probe, value):
        Hook.__init__(self, probe)
        self.value = value
        self.done = False

    def applied(self, text, data=None):
        """Tell that it was applied, once."""
        if not self.done:
            self.done = True
            self.probe.event("intervention", "info", text,
                             dict(data or {}, setting=self.name, value=self.value))

    def unapplied(self, why):
        """Tell that it was not, where it was asked for in a process that made steps."""
        self.probe.event("intervention_failed", "warning", "%s was not applied: %s" % (self.name, why),
                         {"setting": self.name, "reason": why})

    def finish(self):
        """The process ends."""
        if not self.done:
            self.unapplied(self.why)


class LoopIntervention(Intervention):
    """One that is for the batches of the loop's own loader."""

    why = "no loader of torch's gave the batches of the loop"

    def __init__(self, probe, value, inference=False):
        Intervention.__init__(self, probe, value)
        self.inference = inference

    def counts(self, loader):
        """Whether this is the loop's loader: a backward came after its batches. Not known of the first."""
        if loader.background:
            self.why = "another thread than the loop's reads the loader"
            return False
        return loader.train or (self.inference and loader.told is not None)

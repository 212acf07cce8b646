"""A hook into torch: installed, removed, and switched off for good when it fails."""

import torch


def _never():
    return False


# A constant to the compiler: true while it looks through a function of ours.
dynamo_compiles = _never
for _name in ("is_compiling", "is_dynamo_compiling"):
    dynamo_compiles = getattr(getattr(torch, "compiler", None), _name, dynamo_compiles)


def hide_frames(error):
    """Take our frames at the head of a traceback out of it, so that it reads as without us.

    For an exception that comes out of the user's call, before a bare `raise`. Before
    Python 3.11 they stay.
    """
    traceback = error.__traceback__
    while traceback is not None and _ours(traceback.tb_frame.f_globals.get("__package__")):
        traceback = traceback.tb_next
    BaseException.with_traceback(error, traceback)


def _ours(package):
    return package == __package__ or (package or "").startswith(__package__ + ".")


class Hook:
    """Base of all hooks. `install` patches through `patch`; `fail` ends the hook, never the user's code."""

    name = ""

    def __init__(self, probe):
        self.probe = probe
        self.loop = probe.loop
        self.failed = self.on = False
        self._patches = []
        self.sited = False

    def install(self):
        raise NotImplementedError

    def patch(self, owner, attribute, replacement):
        """Put `replacement` on a class or module of torch. Returns what was there."""
        original = getattr(owner, attribute)
        own = attribute in vars(owner)
        replacement.stepscope = True
        setattr(owner, attribute, replacement)
        self._patches.append((owner, attribute, original if own else None, replacement))
        return original

    def remove(self):
        """Undo the patches, except where somebody has put theirs on top since."""
        while self._patches:
            owner, attribute, original, replacement = self._patches.pop()
            if vars(owner).get(attribute) is not replacement:
                continue
            if original is None:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, original)

    def enable(self):
        if not self.failed and not self.on:
            self.on = True
            try:
                self.loop.tape.stop()
                self.install()
            except Exception as error:
                self.fail(error)

    def disable(self):
        self.on = False
        try:
            self.loop.tape.stop()
            self.remove()
        except Exception as error:
            self.fail(error)

    def fail(self, error):
        """Switch off after an error of ours; one event says so."""
        if self.failed:
            return
        self.failed = True
        try:
            self.remove()
            self.probe.event("hook_off", "warning", "The %s hook failed and is off: %s: %s"
                             % (self.name, type(error).__name__, error), {"hook": self.name})
        except Exception:
            pass

    def site(self):
        """Tell the user's line for this hook, once."""
        if not self.sited:
            self.sited = True
            self.probe.site(self.name)



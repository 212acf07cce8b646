"""Calls a function once a module has been imported, without importing it."""

import sys


class _Waiting:
    """A finder that lets the others find the module, and learns when it has been executed."""

    def __init__(self, name, action, begins):
        self.name = name
        self.action = action
        self.begins = begins
        self.busy = False

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.busy:
            return None
        from importlib.util import find_spec

        self.busy = True
        begins, self.begins = self.begins, None
        try:
            if begins is not None:
                begins()
        except Exception:  # ours to miss
            pass
        try:
            spec = find_spec(name)
        except Exception:
            return None  # the import that follows meets the same error, without us
        finally:
            self.busy = False
        execute = getattr(getattr(spec, "loader", None), "exec_module", None)
        if execute is not None:
            self._follow(spec.loader, execute)
        return spec

    def _follow(self, loader, execute):
        def exec_module(module):
            try:
                del loader.exec_module
            except AttributeError:
                pass
            execute(module)
            try:
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                self.action()
            except Exception:  # the user's import has succeeded; ours is no reason to fail it
                pass

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass


def after(name, action, begins=None):
    """Call `action()` once the module `name` has been imported; at once when it has been.

    `begins()` is called before, when it is first looked for.
    """
    if name in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Waiting(name, action, begins))

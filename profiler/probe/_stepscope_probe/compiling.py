"""torch.compile must meet torch as it is: what could stand in its way is taken away before it begins."""

import functools

import torch

from .hook import Hook


class CompileHook(Hook):
    name = "compile"

    def install(self):
        if not hasattr(torch, "compile"):
            return
        hook, original = self, torch.compile

        @functools.wraps(original)
        def compile(*args, **kwargs):
            try:
                hook.probe.compile_begins()
            except Exception as error:
                hook.fail(error)
            try:
                return original(*args, **kwargs)
            finally:
                try:
                    hook.probe.compile_ends()
                except Exception as error:
                    hook.fail(error)

        self.patch(torch, "compile", compile)

"""torch.compile must find Tensor as torch made it: our methods are taken away before it begins."""

import functools

import torch

from .hook import Hook, hide_frames


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
            except BaseException as error:
                hide_frames(error)
                raise

        self.patch(torch, "compile", compile)

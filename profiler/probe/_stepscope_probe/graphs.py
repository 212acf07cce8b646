"""CUDA graphs: a replay outside any module is a forward; it trains when a backward ran in its capture."""

import weakref

import torch

from .hook import Hook, hide_frames


class GraphHook(Hook):
    name = "graph"

    def __init__(self, probe):
        Hook.__init__(self, probe)
        self._training = weakref.WeakSet()
        self._backwards = 0

    def install(self):
        hook, loop, graph = self, self.loop, torch.cuda.CUDAGraph
        begin, end, original = graph.capture_begin, graph.capture_end, graph.replay

        def capture_begin(self, *args, **kwargs):
            hook._backwards = loop.backwards
            return begin(self, *args, **kwargs)

        def capture_end(self):
            end(self)
            if loop.backwards != hook._backwards:
                hook._training.add(self)

        def replay(self):
            depth = None
            try:
                depth = loop.forward_enter()
                if depth is not None and self in hook._training and loop.stack[depth] == 0:
                    loop.trained()
                hook.site()
            except Exception as error:
                hook.fail(error)
            try:
                original(self)
            except BaseException as error:
                hide_frames(error)
                raise
            finally:
                if depth is not None:
                    loop.pop(depth)

        self.patch(graph, "capture_begin", capture_begin)
        self.patch(graph, "capture_end", capture_end)
        self.patch(graph, "replay", replay)

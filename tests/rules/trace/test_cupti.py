"""Why nothing was captured of the device, from what the command printed."""

import pytest

from profiler.rules.trace.cupti import cause

# As Kineto prints it, the advice with whatever error it was.
KINETO = ("WARNING:2025-02-26 09:43:38 68350:68350 init.cpp] function cbapi->getCuptiStatus() failed with "
          "error CUPTI_ERROR_{}\r\n"
          "WARNING:2025-02-26 09:43:38 68350:68350 init.cpp] CUPTI initialization failed - CUDA profiler "
          "activities will be missing\r\n"
          "INFO:2025-02-26 09:43:38 68350:68350 init.cpp] If you see CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "
          "refer to https://developer.nvidia.com/nvidia-development-tools-solutions-err-nvgpuctrperm-cupti\r\n")


@pytest.mark.parametrize(("printed", "why"), [
    (KINETO.format("MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)"),
     "another profiler uses CUPTI (nsys, DCGM or kin) (CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)"),
    (KINETO.format("INSUFFICIENT_PRIVILEGES (35)"),
     "the driver lets only administrators profile (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)"),
    (KINETO.format("NOT_INITIALIZED (15)"), "CUPTI failed (CUPTI_ERROR_NOT_INITIALIZED)"),
    ("\n".join(KINETO.splitlines()[1:]), "CUPTI could not be initialised"),
    (KINETO.splitlines()[2], ""),
    ("epoch 1: loss 0.3\n", ""),
    ("", ""),
])
def test_the_first_error_that_is_no_advice(printed, why):
    assert cause(printed) == why

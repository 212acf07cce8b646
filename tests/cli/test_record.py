"""What `record` makes of its command line."""

import pytest

from profiler.cli.record import _name


@pytest.mark.parametrize(("command", "name"), [
    ("python -u train.py --epochs 3", "train"), ("python3.11 -m pkg.train x.py", "pkg.train"),
    ("torchrun --nproc-per-node 2 train.py", "train"), ("./run.sh a", "run.sh"),
    ("python -m torch.distributed.run --standalone ddp.py", "ddp"),
    ("python -m accelerate.commands.launch train.py", "train")])
def test_a_run_is_called_after_its_script(command, name):
    assert _name(command.split()) == name

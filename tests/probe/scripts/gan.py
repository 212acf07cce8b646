"""Two models, two optimizers; models are saved, copied, pickled and scripted while they train."""

import copy
import io
import pickle

import torch
from common import Net, Slow, Timers, timed
from torch import nn

generator, critic = Net(0.004, 0.004, out=8), Net(0.003, 0.005, out=1)
g_optimizer = torch.optim.Adam(generator.parameters())
c_optimizer = torch.optim.Adam(critic.parameters())
timers = Timers()
for step, (x, _) in enumerate(timed(torch.utils.data.DataLoader(Slow(20), batch_size=2), timers)):
    noise = torch.randn(2, 8)
    timers.end(None)
    fake = generator(noise)
    decided = critic(fake.detach())
    real = critic(x)
    timers.end("forward")
    loss = decided.mean() - real.mean()
    c_optimizer.zero_grad()
    timers.end(None)
    loss.backward()
    timers.end("backward")
    c_optimizer.step()
    timers.end("optimizer")
    decided = critic(fake)
    timers.end("forward")
    loss = -decided.mean()
    g_optimizer.zero_grad()
    timers.end(None)
    loss.backward()
    timers.end("backward")
    g_optimizer.step()
    timers.end("optimizer")
    if step in (0, 5):
        buffer = io.BytesIO()
        torch.save(generator, buffer)
        buffer.seek(0)
        loaded = torch.load(buffer, weights_only=False)
        copied = copy.deepcopy(generator)
        pickled = pickle.loads(pickle.dumps(critic))
        assert type(loaded) is type(copied) is type(pickled) is Net
        assert sorted(vars(loaded)) == sorted(vars(Net(0, 0)))
        optimizers = pickle.loads(pickle.dumps(g_optimizer))
        assert len(optimizers.param_groups) == 1
        layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        scripted = torch.jit.script(layers)
        traced = torch.jit.trace(layers, x)
        assert torch.equal(scripted(x), traced(x))
timers.say(wrapped="__call__" in vars(Net))

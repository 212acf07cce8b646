"""A plain loop: two epochs of training, each followed by an evaluation."""

import torch
from common import Net, Slow, SlowSGD, Timers, timed, train_step

model = Net()
optimizer = SlowSGD(model.parameters(), lr=0.01)
train = torch.utils.data.DataLoader(Slow(24, 0.003), batch_size=2, shuffle=True)
valid = torch.utils.data.DataLoader(Slow(8), batch_size=2)
timers = Timers()
model(torch.zeros(1, 8))  # a trial of the shapes, as many scripts make
for _ in range(2):
    model.train()
    for x, y in timed(train, timers):
        train_step(model, optimizer, x, y, timers)
    model.eval()
    with torch.no_grad():
        for x, _ in valid:
            model(x)
timers.say(module=type(model).__module__)

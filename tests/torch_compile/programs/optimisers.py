"""Steps of optimisers over lists of parameters, which become one kernel."""

import torch
from torch_compile.declaration import model, normal

SHAPES = [(7, 9), (9,), (5, 3, 3), (1,)]


class Steps:
    """Some steps of an optimiser; what it is given are the gradients, and its parameters come out."""

    def __init__(self, make, prepare=lambda parameters: None):
        self._make, self._prepare = make, prepare
        self.parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in SHAPES]

    def double(self):
        self.parameters = [torch.nn.Parameter(parameter.detach().double()) for parameter in self.parameters]
        return self

    def __call__(self, *gradients):
        return self.compiled(lambda function: function, *gradients)

    def compiled(self, compile, *gradients):
        optimiser = self._make(self.parameters)

        def step():
            self._prepare(self.parameters)
            optimiser.step()

        run = compile(step)
        for scale in (1.0, 0.5, -0.2):
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                parameter.grad = gradient * scale
            run()
        return [parameter.detach() for parameter in self.parameters]


OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, foreach=True),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True, foreach=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, foreach=True),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.1, foreach=True),
    "adadelta": lambda p: torch.optim.Adadelta(p, foreach=True),
}
GRADIENTS = [normal(*shape) for shape in SHAPES]
for name, make in OPTIMISERS.items():

    def build(make=make):
        return Steps(make)

    build.__name__ = f"steps_of_{name}"
    model(*GRADIENTS)(build)


@model(*GRADIENTS)
def steps_with_clipped_gradients():
    def clip(parameters):
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)

    return Steps(lambda p: torch.optim.SGD(p, lr=0.1, foreach=True), clip)

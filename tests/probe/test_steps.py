from infrarsi_probe.steps import StepMachine


def backward(machine: StepMachine) -> None:
    machine.backward_begins()
    machine.backward_ends()


def optimize(machine: StepMachine) -> None:
    machine.optimizer_begins()
    machine.optimizer_ends()


def test_a_step_ends_at_the_first_work_after_its_optimizer_call():
    machine = StepMachine()
    assert not machine.ends_before_work()
    backward(machine)
    backward(machine)
    assert not machine.ends_before_work()
    optimize(machine)
    assert machine.ends_before_work()
    assert machine.close() == 2
    assert machine.index == 1
    assert not machine.ends_before_work()


def test_several_optimizers_make_one_step():
    machine = StepMachine()
    backward(machine)
    optimize(machine)
    optimize(machine)
    assert machine.ends_before_work()
    machine.close()
    assert not machine.pending


def test_an_optimizer_called_inside_backward_does_not_end_the_step_there():
    machine = StepMachine()
    machine.backward_begins()
    optimize(machine)
    assert not machine.ends_before_work()
    machine.backward_ends()
    assert machine.ends_before_work()


def test_a_closure_called_by_the_optimizer_does_not_end_the_step():
    machine = StepMachine()
    backward(machine)
    optimize(machine)
    machine.close()
    machine.optimizer_begins()
    backward(machine)
    assert not machine.ends_before_work()
    machine.optimizer_ends()
    assert machine.ends_before_work()


def test_a_wrapped_optimizer_counts_once():
    machine = StepMachine()
    backward(machine)
    assert machine.optimizer_begins()
    assert not machine.optimizer_begins()
    machine.optimizer_ends()
    machine.optimizer_ends()
    assert machine.pending


def test_a_skipped_optimizer_call_still_makes_a_step():
    machine = StepMachine()
    backward(machine)
    machine.optimizer_called()
    assert machine.ends_before_work()


def test_an_optimizer_called_before_any_backward_makes_no_step():
    machine = StepMachine()
    optimize(machine)
    assert not machine.ends_before_work()
    assert machine.n_optimizer_calls == 1

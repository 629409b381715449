"""Search benches: an analytic cluster simulator, recorded runs, and methods on equal budgets.

Nothing here reads `infrarsi.search`'s models: the simulator judges them.
"""

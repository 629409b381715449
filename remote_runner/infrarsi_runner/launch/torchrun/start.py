"""Starts torch's own launcher. A folder of its own, so that nothing here shadows a module.

`python -m torch.distributed.run` would put the working folder, which is the candidate's, in
front of the import path of the launcher itself.
"""

from torch.distributed.run import main

main()

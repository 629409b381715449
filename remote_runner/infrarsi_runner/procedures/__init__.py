"""What a campaign does: plain loops over runs, resumable because every run is journalled."""

from infrarsi_runner.procedures.campaign import campaign
from infrarsi_runner.procedures.doctor import doctor
from infrarsi_runner.procedures.verify import verify

PROCEDURES = {"doctor": doctor, "run": campaign, "verify": verify}

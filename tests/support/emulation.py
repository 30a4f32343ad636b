"""What a test does otherwise under qemu-user, which scripts/test-host says with CDACQ_EMULATED: emulation.h for scripts."""
import os

EMULATED = "CDACQ_EMULATED" in os.environ


def time_bound(seconds):
    """A bound on time: `seconds`, on every real machine, or 20 times that under qemu-user."""
    return 20 * seconds if EMULATED else seconds

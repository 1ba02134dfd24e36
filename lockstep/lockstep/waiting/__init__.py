"""Runs units that wait for each other, out of lock-step: scheduler, mbarriers, TMA's copies, wgmma."""

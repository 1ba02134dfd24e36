"""Units that wait for one another leave lock-step: scheduler, mbarriers, TMA's copies, wgmma's products."""

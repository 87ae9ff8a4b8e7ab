# Installation is filled in with the launch floor.

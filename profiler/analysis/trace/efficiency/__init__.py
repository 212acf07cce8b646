"""Work from shapes, against what the device could do. Definitions, section 8."""

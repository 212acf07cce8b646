"""What the time of a step went to: the partition, its idle gaps and their causes. Definitions, section 3."""

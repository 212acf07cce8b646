"""Which operator, module and line of code host time and device activities belong to."""

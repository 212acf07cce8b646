"""Programs that StepScope ships. Recorded exactly like a user's script."""

package chaos

const workFor = "CHAOS_WORK_FOR"

func work(string) int { return 1 }

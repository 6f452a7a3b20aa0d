// A budget of time that several steps share, such as those of a stop: what one leaves over the next ones have,
// and together they are never later than the whole. By the machine's monotonic clock.

export interface Deadline {
  /** Milliseconds until then; 0 when it has passed. */
  left(): number;
  /** The deadline of one step: when `part` (0 to 1) of what is left now will be over. */
  share(part: number): Deadline;
}

/** The deadline in so many milliseconds. */
export function deadlineIn(ms: number): Deadline {
  const end = performance.now() + ms;
  const left = () => Math.max(0, end - performance.now());
  return { left, share: (part) => deadlineIn(left() * part) };
}

/**
 * Waits for work, but not beyond a deadline; the work itself goes on.
 * @returns whether it was done by then. @throws what the work throws by then.
 */
export async function doneBy(deadline: Deadline, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), deadline.left());
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

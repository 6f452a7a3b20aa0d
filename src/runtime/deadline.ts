// A time budget shared by several steps, such as those of a stop. Monotonic.

export interface Deadline {
  /** Milliseconds left; 0 when it has passed. */
  left(): number;
  /** Returns the deadline of a step that may use `part` (0 to 1) of what is left. */
  share(part: number): Deadline;
}

/** Returns the deadline that passes in so many milliseconds. */
export function deadlineIn(ms: number): Deadline {
  const end = performance.now() + ms;
  const left = () => Math.max(0, end - performance.now());
  return { left, share: (part) => deadlineIn(left() * part) };
}

/**
 * Waits for work, but not longer than until a deadline; the work itself continues.
 * @returns whether it was done by then.
 * @throws what the work throws by then.
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

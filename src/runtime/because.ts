// How faults of a start are said to whoever can mend them.

/** Puts what is in the way before the system's own words for it. @returns what throws both as one Error. */
export function because(what: string): (thrown: unknown) => never {
  return (thrown) => {
    throw new Error(`${what} (${thrown instanceof Error ? thrown.message : String(thrown)})`, {
      cause: thrown,
    });
  };
}

// Explains failures of a start to the operator.

/** Prefixes an explanation to a system error's message. @returns a handler that throws both as one Error. */
export function wrapError(what: string): (thrown: unknown) => never {
  return (thrown) => {
    throw new Error(`${what} (${thrown instanceof Error ? thrown.message : String(thrown)})`, {
      cause: thrown,
    });
  };
}

// Which parameters of a token request the engine reads.

/**
 * Has it read those of the request's own grant. It would read those of all grants, which are many, look through them several
 * times, and leave out those of other grants before the grant begins.
 * @param known the engine's: the names by grant type, and those of all together, to which each grant is added.
 * @param grantType of the request that is at hand, as it was sent.
 */
export function readOwnParameters(
  known: ReadonlyMap<string | undefined, Set<string>>,
  grantType: () => unknown,
): void {
  const all = known.get(undefined);
  if (all === undefined) throw new Error('the engine keeps its parameters in another way');
  all[Symbol.iterator] = () => {
    const asked = grantType();
    const own = typeof asked === 'string' ? known.get(asked) : undefined;
    return (own ?? all).values();
  };
}

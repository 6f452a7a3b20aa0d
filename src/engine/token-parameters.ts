// Limits the parameters of a token request that the engine reads.

/**
 * Makes the engine read only the parameters of the request's own grant. By default it reads those of all grants,
 * searches them several times, and then drops those of the other grants.
 * @param byGrantType the engine's names of parameters by grant type, and those of all grants under `undefined`.
 * @param grantType returns the `grant_type` of the current request, as sent.
 */
export function readGrantParameters(
  byGrantType: ReadonlyMap<string | undefined, Set<string>>,
  grantType: () => unknown,
): void {
  const all = byGrantType.get(undefined);
  if (all === undefined) throw new Error('the engine keeps its parameters in another way');
  all[Symbol.iterator] = () => {
    const requested = grantType();
    const ownParameters = typeof requested === 'string' ? byGrantType.get(requested) : undefined;
    return (ownParameters ?? all).values();
  };
}

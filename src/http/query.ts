// Adds parameters to addresses of applications.

/**
 * Returns an address with parameters in its query, in place of those with the same names. The rest of the query keeps its
 * spelling (`%7E`, `flag` without a value), because an application may have signed it.
 */
export function withParameters(address: string, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(address);
  const given = url.search === '' ? [] : url.search.slice(1).split('&');
  const kept = given.filter((part) => {
    const [name] = new URLSearchParams(part).keys();
    return name === undefined || !Object.hasOwn(parameters, name);
  });
  url.search = [...kept, String(new URLSearchParams(parameters))].join('&');
  return url.href;
}

// Where an application begins a login (`initiate_login_uri`). The host may come from the metadata of an organization.
// docs/understand/decisions/authorize.md#initiate_login_uri-may-have-a-host-from-an-organizations-metadata

/** An organization as far as an address may depend on it. */
type Owner = { readonly metadata?: unknown } | undefined;

const PLACEHOLDER = /\{([^{}]+)\}/g;
const METADATA = 'organization.metadata.';

/** What may stand in a host: no separator of a URL, so that the rest of the address stays what it is, and no empty label. */
const HOST_PART = /^(?!\.)(?:[a-z\d-]|\.(?=[a-z\d])){1,253}(?::\d{1,5})?$/i;

/**
 * Returns the address, with the organization's values.
 * @returns undefined where there is none, and where a value is missing or is no host: users then go where the tenant says.
 */
export function loginAddressOf(
  { initiate_login_uri: address }: { readonly initiate_login_uri?: string | undefined },
  organization?: Owner,
): string | undefined {
  if (address === undefined || !/\{(?:organization|custom_domain)\./i.test(address)) return address;
  const [, scheme = '', authority = '', rest = ''] = /^(https?:\/\/)([^/?#]*)(.*)$/is.exec(address) ?? [];
  const values = (organization?.metadata ?? {}) as Readonly<Record<string, unknown>>;
  const filled = authority.replace(PLACEHOLDER, (placeholder, name: string) => {
    const key = name.slice(METADATA.length);
    const isPublic = name.toLowerCase().startsWith(`${METADATA}public_`);
    const value = isPublic && Object.hasOwn(values, key) ? values[key] : undefined;
    return typeof value === 'string' && HOST_PART.test(value) ? value.toLowerCase() : placeholder;
  });
  const isComplete = !/[{}@]/.test(filled) && !/\{(?:organization|custom_domain)\./i.test(rest);
  const url = isComplete ? URL.parse(`${scheme}${filled}${rest}`) : null;
  // The host is what was filled in, and not what a parser makes of it.
  return url?.hostname === filled.toLowerCase().replace(/:\d+$/, '')
    ? `${scheme}${filled}${rest}`
    : undefined;
}

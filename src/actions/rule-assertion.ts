// What rules say of a SAML response (`context.samlConfiguration`), as what actions would have asked for.
import type { Command } from './commands.ts';

type Members = Readonly<Record<string, unknown>>;

/**
 * @param configuration its `mappings` are fields of the user by the attribute that has them, the other way round than those
 *   of an application.
 * @param user as rules left it. @param provedAddress the user's verified e-mail address.
 */
export function assertionCommands(
  { mappings = {}, ...settings }: Members,
  user: Members,
  provedAddress: string | undefined,
): Command[] {
  const attributes = Object.entries(mappings ?? {}).flatMap(([attribute, field]) => {
    const value = typeof field === 'string' ? fieldOf(user, field) : undefined;
    return isReleased(value, provedAddress)
      ? [{ method: 'samlResponse.setAttribute', args: [attribute, value] }]
      : [];
  });
  const set = Object.entries(settings).map(([name, value]) => ({
    method: `samlResponse.set${name.slice(0, 1).toUpperCase()}${name.slice(1)}`,
    args: [value],
  }));
  return [...set, ...attributes];
}

/** `nickname`, `user_metadata.team`. */
function fieldOf(user: Members, field: string): unknown {
  return field
    .split('.')
    .reduce<unknown>(
      (value, name) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, name)
          ? (value as Members)[name]
          : undefined,
      user,
    );
}

/** Service providers take addresses for who somebody is: nothing that reads as one is told unless it was verified. */
function isReleased(value: unknown, provedAddress: string | undefined): boolean {
  if (Array.isArray(value)) return value.every((one) => isReleased(one, provedAddress));
  if (typeof value !== 'string') return typeof value === 'number' || typeof value === 'boolean';
  return !value.normalize('NFKC').includes('@') || value === provedAddress;
}

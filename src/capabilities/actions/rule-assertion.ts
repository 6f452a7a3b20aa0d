// Converts what rules set for a SAML response (`context.samlConfiguration`) to calls of an action's methods.
import type { Command } from './commands.ts';

type Members = Readonly<Record<string, unknown>>;

/**
 * Returns the calls for a SAML configuration.
 * @param configuration its `mappings` map attributes to fields of the user, the reverse of an application's mappings.
 * @param user the user, as the rules left it.
 * @param verifiedEmail the user's verified e-mail address.
 */
export function assertionCommands(
  { mappings = {}, ...settings }: Members,
  user: Members,
  verifiedEmail: string | undefined,
): Command[] {
  const attributes = Object.entries(mappings ?? {}).flatMap(([attribute, field]) => {
    const value = typeof field === 'string' ? fieldOf(user, field) : undefined;
    return isReleased(value, verifiedEmail)
      ? [{ method: 'samlResponse.setAttribute', args: [attribute, value] }]
      : [];
  });
  const settingCommands = Object.entries(settings).map(([name, value]) => ({
    method: `samlResponse.set${name.slice(0, 1).toUpperCase()}${name.slice(1)}`,
    args: [value],
  }));
  return [...settingCommands, ...attributes];
}

/** Returns a member by path, such as `nickname` or `user_metadata.team`. */
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

/**
 * Service providers identify people by their addresses, so no value that reads as an e-mail address is released unless
 * it was verified.
 */
function isReleased(value: unknown, verifiedEmail: string | undefined): boolean {
  if (Array.isArray(value)) return value.every((one) => isReleased(one, verifiedEmail));
  if (typeof value !== 'string') return typeof value === 'number' || typeof value === 'boolean';
  return !value.normalize('NFKC').includes('@') || value === verifiedEmail;
}

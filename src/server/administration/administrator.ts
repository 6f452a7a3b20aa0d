// Access to the console for anyone who can read the data directory: for the first owner, and for one who is locked
// out.
import { createLink, type LinkDependencies } from '../../features/console/administrators/links.ts';
import { changeRoleAsOperator, memberOf } from '../../features/console/administrators/members.ts';
import { normalizeEmail } from '../../records/email.ts';

/** A link, and whether it is for a new administrator. */
interface OwnerLink {
  url: string;
  isNew: boolean;
}

/**
 * Creates a link with which somebody becomes an owner of the console. An existing administrator becomes an owner at
 * once, and sets a new password with the link.
 * @throws Error if the e-mail address is not valid, or too many links are open.
 */
export async function ownerLink(deps: LinkDependencies, address: string): Promise<OwnerLink> {
  const email = normalizeEmail(address);
  if (email === undefined) throw new Error(`${address} is no e-mail address`);
  const [user] = await deps.administrators.withEmail(email);
  const member = user && (await memberOf(deps, user.id));
  if (user === undefined || member === undefined) {
    return { url: await createOwnerLink(deps, { email, role: 'owner' }), isNew: true };
  }
  await changeRoleAsOperator(deps, user.id, 'owner');
  return { url: await createOwnerLink(deps, { email, user_id: user.id }), isNew: false };
}

async function createOwnerLink(
  ...request: [LinkDependencies, Parameters<typeof createLink>[1]]
): Promise<string> {
  const url = await createLink(...request, undefined);
  if (url === undefined) throw new Error('too many links are out: they end after three days');
  return url;
}

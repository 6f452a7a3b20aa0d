// The way in to the console for whoever may open the data directory: the first owner, and one who is locked out.
import { type LinkDependencies, makeLink } from '../console/administrators/links.ts';
import { changeRoleAtOnce, memberOf } from '../console/administrators/members.ts';
import { normalizeEmail } from '../records/email.ts';

/** A link, and whether somebody becomes an administrator by it. */
interface OwnerLink {
  url: string;
  isNew: boolean;
}

/**
 * Makes the link of an owner: to become one, or for who is an administrator already to set a new password; they are an owner
 * from then on. @throws Error for what is no address.
 */
export async function ownerLink(deps: LinkDependencies, asked: string): Promise<OwnerLink> {
  const email = normalizeEmail(asked);
  if (email === undefined) throw new Error(`${asked} is no e-mail address`);
  const [user] = await deps.administrators.withEmail(email);
  const member = user && (await memberOf(deps, user.id));
  if (user === undefined || member === undefined) {
    return { url: await made(deps, { email, role: 'owner' }), isNew: true };
  }
  await changeRoleAtOnce(deps, user.id, 'owner');
  return { url: await made(deps, { email, user_id: user.id }), isNew: false };
}

async function made(...asked: [LinkDependencies, Parameters<typeof makeLink>[1]]): Promise<string> {
  const url = await makeLink(...asked, undefined);
  if (url === undefined) throw new Error('too many links are out: they end after three days');
  return url;
}

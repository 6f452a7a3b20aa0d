// Links by which somebody becomes an administrator, or sets a new password of theirs. They are kept with the roles, as
// hashes: using one up and what comes of it is one write.
import { linkExpired } from '../../http/errors.ts';
import {
  ADMINISTRATORS,
  type AdministratorLink,
  type AdministratorRole,
  type AdministratorsRecord,
} from '../../records/administrators.ts';
import type { Frozen } from '../../records/record.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/random.ts';
import { isSameSecret, sha256 } from '../../runtime/secrets.ts';
import type { Write } from '../../store/contract.ts';
import { CONSOLE } from '../callbacks.ts';
import { addAdministrator, isOwner, type MemberDependencies, registerOf } from './members.ts';

export interface LinkDependencies extends MemberDependencies {
  /** The console's public origin. */
  consoleUrl: string;
  random: Random;
}

/** The page that links lead to. */
export const LINK_PATH = `${CONSOLE}/link`;

/** How long a link is good, seconds: three days for who is invited, an hour for a new password. */
export const LINK_SECONDS = { invitation: 3 * 86_400, password: 3600 } as const;

/** Links that are out at once, at most. */
const MOST = 200;

/** What a link is for. */
type Purpose = { email: string; role: AdministratorRole } | { email: string; user_id: string };

type Register = Frozen<AdministratorsRecord>;

/**
 * Makes a link; one of before for the same address is good no more.
 * @param by the owner who makes it; undefined for the command.
 * @returns its address, or undefined where whoever asks is no owner any more, or there are too many.
 */
export async function makeLink(
  { store, consoleUrl, random, wallClock }: LinkDependencies,
  purpose: Purpose,
  by: string | undefined,
): Promise<string | undefined> {
  const secret = random(32).toString('base64url');
  const lifetime = LINK_SECONDS['role' in purpose ? 'invitation' : 'password'];
  const link: AdministratorLink = {
    id: random(12).toString('hex'),
    secret_hash: sha256(secret),
    ...purpose,
    ...(by !== undefined && { made_by: by }),
    expires_at: new Date(wallClock() + lifetime * 1000).toISOString(),
  };
  const kept = await store.collection('administrators').upsert(ADMINISTRATORS, (found) => {
    const register = found ?? { id: ADMINISTRATORS, members: [] };
    const others = openLinks(register, wallClock).filter(({ email }) => email !== purpose.email);
    const isAllowed = (by === undefined || isOwner(register, by)) && others.length < MOST;
    return isAllowed ? { ...register, links: [...others, link] } : register;
  });
  const isKept = kept.links?.some(({ id }) => id === link.id) === true;
  return isKept ? `${consoleUrl}${LINK_PATH}?ticket=${secret}` : undefined;
}

/** The links that are still good. */
export function openLinks({ links = [] }: Register, wallClock: Clock): Frozen<AdministratorLink>[] {
  const now = new Date(wallClock()).toISOString();
  return links.filter(({ expires_at }) => expires_at > now);
}

/** Takes a link back. @param by the owner who does it. @returns what it was for. */
export async function withdrawLink(
  { store }: Pick<LinkDependencies, 'store'>,
  id: string,
  by: string,
): Promise<Frozen<AdministratorLink> | undefined> {
  const before = (await registerOf({ store })).links?.find((one) => one.id === id);
  await store
    .collection('administrators')
    .update(ADMINISTRATORS, (register) =>
      isOwner(register, by)
        ? { ...register, links: (register.links ?? []).filter((one) => one.id !== id) }
        : register,
    );
  return before;
}

/** What a link is for, without using it; undefined for one that is not good. */
export async function linkOf(
  deps: Pick<LinkDependencies, 'store' | 'wallClock'>,
  secret: string,
): Promise<Frozen<AdministratorLink> | undefined> {
  return foundIn(await registerOf(deps), secret, deps.wallClock);
}

function foundIn(register: Register, secret: string, wallClock: Clock) {
  const hash = sha256(secret);
  return openLinks(register, wallClock).find((one) => isSameSecret(one.secret_hash, hash));
}

/** The register without a link that is used now. @throws AuthError 400 where it was used before, or taken back. */
function spent(register: Register, id: string, wallClock: Clock): Register {
  const links = openLinks(register, wallClock);
  if (!links.some((one) => one.id === id)) throw linkExpired();
  return { ...register, links: links.filter((one) => one.id !== id) };
}

/**
 * Makes an administrator of whoever has a link.
 * @returns the id of the user; undefined where the address is an administrator's already. @throws AuthError 400
 */
export async function acceptLink(
  deps: LinkDependencies,
  { id, email }: Frozen<AdministratorLink>,
  { name, password, role }: { name: string; password: string; role: AdministratorRole },
): Promise<string | undefined> {
  const made = await addAdministrator(deps, { email, name, password, role }, (register) =>
    spent(register, id, deps.wallClock),
  );
  return made?.id;
}

/** Sets the password of an administrator who has a link. Logins from before it are over. @throws AuthError 400 */
export async function setPasswordByLink(
  { administrators, wallClock }: LinkDependencies,
  { id, user_id: userId }: Frozen<AdministratorLink> & { user_id: string },
  password: string,
): Promise<void> {
  const change = (register: Register) => spent(register, id, wallClock);
  const also = [{ collection: 'administrators', update: ADMINISTRATORS, change } as const];
  await administrators.setPassword(userId, password, { also });
}

/** The write that takes back the links to a new password of an administrator's. */
export function endPasswordLinks(userId: string): Write {
  return {
    collection: 'administrators',
    update: ADMINISTRATORS,
    change: ({ links = [], ...register }) => ({
      ...register,
      links: links.filter((one) => one.user_id !== userId),
    }),
  };
}

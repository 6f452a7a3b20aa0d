// Links by which an invited person becomes an administrator, or an administrator sets a new password. They are stored
// as hashes in the record of the roles, so that one write both uses up a link and applies its effect.
import { linkExpired } from '../../../http/errors.ts';
import type { Frozen } from '../../../records/base/record.ts';
import {
  ADMINISTRATORS,
  type AdministratorLink,
  type AdministratorRole,
  type AdministratorsRecord,
} from '../../../records/users/administrators.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { Random } from '../../../runtime/secrets.ts';
import { isSameSecret, sha256 } from '../../../runtime/secrets.ts';
import type { Write } from '../../../store/contract.ts';
import { updateWithResult } from '../../../store/contract.ts';
import { CONSOLE } from '../console-callbacks.ts';
import {
  addAdministrator,
  isOwner,
  type MemberDependencies,
  readRegister,
} from './console-administrator-members.ts';

export interface LinkDependencies extends MemberDependencies {
  /** The console's public origin. */
  consoleUrl: string;
  random: Random;
}

export const LINK_PATH = `${CONSOLE}/link`;

/** Lifetime of a link, seconds: three days for an invitation, one hour for a new password. */
export const LINK_SECONDS = { invitation: 3 * 86_400, password: 3600 } as const;

const MAX_OPEN_LINKS = 200;

/** The purpose of a link: an invitation with a role, or a new password for a user. */
type Purpose = { email: string; role: AdministratorRole } | { email: string; user_id: string };

type Register = Frozen<AdministratorsRecord>;

/**
 * Creates a link, replacing an earlier one for the same address.
 * @param ownerId the owner who creates it; undefined for a command.
 * @returns its address; undefined when `ownerId` is no longer an owner or there are too many open links.
 */
export async function createLink(
  { store, consoleUrl, random, wallClock }: LinkDependencies,
  purpose: Purpose,
  ownerId: string | undefined,
): Promise<string | undefined> {
  const secret = random(32).toString('base64url');
  const lifetime = LINK_SECONDS['role' in purpose ? 'invitation' : 'password'];
  const link: AdministratorLink = {
    id: random(12).toString('hex'),
    secret_hash: sha256(secret),
    ...purpose,
    ...(ownerId !== undefined && { made_by: ownerId }),
    expires_at: new Date(wallClock() + lifetime * 1000).toISOString(),
  };
  const stored = await store.collection('administrators').upsert(ADMINISTRATORS, (found) => {
    const register = found ?? { id: ADMINISTRATORS, members: [] };
    const others = openLinks(register, wallClock).filter(({ email }) => email !== purpose.email);
    const isAllowed = (ownerId === undefined || isOwner(register, ownerId)) && others.length < MAX_OPEN_LINKS;
    return isAllowed ? { ...register, links: [...others, link] } : register;
  });
  const isStored = stored.links?.some(({ id }) => id === link.id) === true;
  return isStored ? `${consoleUrl}${LINK_PATH}?ticket=${secret}` : undefined;
}

/** Returns the links that have not expired. */
export function openLinks({ links = [] }: Register, wallClock: Clock): Frozen<AdministratorLink>[] {
  const now = new Date(wallClock()).toISOString();
  return links.filter(({ expires_at }) => expires_at > now);
}

/**
 * @param ownerId the owner who does so.
 * @returns the link; undefined when there was none, or `ownerId` is no longer an owner.
 */
export function withdrawLink(
  { store }: Pick<LinkDependencies, 'store'>,
  id: string,
  ownerId: string,
): Promise<Frozen<AdministratorLink> | undefined> {
  return updateWithResult(
    store.collection('administrators'),
    ADMINISTRATORS,
    (register): { result: Frozen<AdministratorLink> | undefined; next?: Register } => {
      const { links = [] } = register;
      const result = isOwner(register, ownerId) ? links.find((one) => one.id === id) : undefined;
      return {
        result,
        ...(result && { next: { ...register, links: links.filter((one) => one !== result) } }),
      };
    },
  );
}

/** Returns an open link without using it up; undefined when the secret belongs to none. */
export async function linkOf(
  deps: Pick<LinkDependencies, 'store' | 'wallClock'>,
  secret: string,
): Promise<Frozen<AdministratorLink> | undefined> {
  return findLink(await readRegister(deps), secret, deps.wallClock);
}

function findLink(register: Register, secret: string, wallClock: Clock) {
  const hash = sha256(secret);
  return openLinks(register, wallClock).find((one) => isSameSecret(one.secret_hash, hash));
}

/** Returns the register without the link. @throws AuthError 400 when it was used or withdrawn meanwhile. */
function spendLink(register: Register, id: string, wallClock: Clock): Register {
  const links = openLinks(register, wallClock);
  if (!links.some((one) => one.id === id)) throw linkExpired();
  return { ...register, links: links.filter((one) => one.id !== id) };
}

/**
 * Makes an administrator of the person who has the link.
 * @returns the id of the user; undefined when the address is an administrator's already.
 * @throws AuthError 400 when the link was used or withdrawn meanwhile.
 */
export async function acceptLink(
  deps: LinkDependencies,
  { id, email }: Frozen<AdministratorLink>,
  { name, password, role }: { name: string; password: string; role: AdministratorRole },
): Promise<string | undefined> {
  const user = await addAdministrator(deps, { email, name, password, role }, (register) =>
    spendLink(register, id, deps.wallClock),
  );
  return user?.id;
}

/**
 * Sets the password of the administrator who has the link, which ends their earlier sessions.
 * @throws AuthError 400 when the link was used or withdrawn meanwhile.
 */
export async function setPasswordByLink(
  { administrators, wallClock }: LinkDependencies,
  { id, user_id: userId }: Frozen<AdministratorLink> & { user_id: string },
  password: string,
): Promise<void> {
  const change = (register: Register) => spendLink(register, id, wallClock);
  const also = [{ collection: 'administrators', update: ADMINISTRATORS, change } as const];
  await administrators.setPassword(userId, password, { also });
}

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

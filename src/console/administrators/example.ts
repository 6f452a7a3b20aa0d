// The administrator of the example tenant: an owner whom everybody knows, for development on this machine alone.
import { FIRST_VERSION } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import { addAdministrator, type MemberDependencies, registerOf } from './members.ts';

/** How the example's administrator logs in. */
export const EXAMPLE_ADMINISTRATOR = {
  email: 'admin@example.test',
  password: 'Gatehouse-1',
} as const;

/** Makes the example's administrator, where there is no administrator yet. */
export async function addExample(deps: MemberDependencies): Promise<void> {
  if ((await registerOf(deps)).members.length > 0) return;
  await addAdministrator(deps, { ...EXAMPLE_ADMINISTRATOR, name: 'Example administrator', role: 'owner' });
}

/** The example's administrator, while there is one whose password was never changed. */
export async function exampleOf(
  administrators: Pick<Users, 'withEmail' | 'credentialVersion'>,
): Promise<typeof EXAMPLE_ADMINISTRATOR | undefined> {
  const [user] = await administrators.withEmail(EXAMPLE_ADMINISTRATOR.email);
  const isFirst = user !== undefined && (await administrators.credentialVersion(user.id)) === FIRST_VERSION;
  return isFirst ? EXAMPLE_ADMINISTRATOR : undefined;
}

/** Whether somebody could log in as the example's administrator. */
export async function isExampleOpen(administrators: Users): Promise<boolean> {
  const [user] = await administrators.withEmail(EXAMPLE_ADMINISTRATOR.email);
  const { password } = EXAMPLE_ADMINISTRATOR;
  return user !== undefined && (await administrators.verifyPassword(user.id, password)) !== undefined;
}

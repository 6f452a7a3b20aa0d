// A password reset, as the owner of the address does it: the mail, its link, the form.
import { createAgent, readForm } from './agent.ts';
import { messagesTo, nextMessageTo } from './inbox.ts';

/** Everything up to the form of the new password. @returns sends it. */
export async function prepareReset(
  server: { url: string; ca: string; dataDir: string },
  email: string,
  connection = 'users',
) {
  // Of a sign-up, another mail may be on its way.
  const isReset = ({ link }: { link?: string }) => link?.includes('/u/reset-password?') === true;
  const before = (await messagesTo(server, email)).filter(isReset).length;
  await createAgent(server).request('/dbconnections/change_password', { json: { connection, email } });
  return resetForm(server, (await nextMessageTo(server, email, before + 1, isReset)).link ?? '');
}

/** The form of a link to a new password, in a browser of its own. @returns sends it. */
export async function resetForm(server: { url: string; ca: string }, link: string) {
  const agent = createAgent(server);
  const { pathname, search } = new URL(link);
  const { action, fields } = readForm(await agent.get(pathname + search), 'password');
  return (password: string) => agent.request(action, { form: { ...fields, password, repeat: password } });
}

/** Sets a new password. @throws Error when it was not taken. */
export async function resetPassword(
  server: { url: string; ca: string; dataDir: string },
  email: string,
  password: string,
  connection?: string,
): Promise<void> {
  const answer = await (await prepareReset(server, email, connection))(password);
  if (answer.status !== 200) throw new Error(`the password was not reset: ${answer.text}`);
}

// A password reset by the owner of the address: the e-mail, its link, the form.
import { createAgent, readForm } from './agent.ts';
import { messagesTo, nextMessageTo } from './inbox.ts';

/** Makes all steps up to the form for the new password. @returns a function that sends the form. */
export async function prepareReset(
  server: { url: string; ca: string; dataDir: string },
  email: string,
  connection = 'users',
) {
  // After a sign-up, another message may still arrive.
  const isReset = ({ link }: { link?: string }) => link?.includes('/u/reset-password?') === true;
  const before = (await messagesTo(server, email)).filter(isReset).length;
  await createAgent(server).request('/dbconnections/change_password', { json: { connection, email } });
  return resetForm(server, (await nextMessageTo(server, email, before + 1, isReset)).link ?? '');
}

/** Opens the form behind a reset link in a new browser. @returns a function that sends it. */
export async function resetForm(server: { url: string; ca: string }, link: string) {
  const agent = createAgent(server);
  const { pathname, search } = new URL(link);
  const { action, fields } = readForm(await agent.get(pathname + search), 'password');
  return (password: string) => agent.request(action, { form: { ...fields, password, repeat: password } });
}

/** Sets a new password. @throws Error when it was refused. */
export async function resetPassword(
  server: { url: string; ca: string; dataDir: string },
  email: string,
  password: string,
  connection?: string,
): Promise<void> {
  const answer = await (await prepareReset(server, email, connection))(password);
  if (answer.status !== 200) throw new Error(`the password was not reset: ${answer.text}`);
}

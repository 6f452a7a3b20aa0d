import { redirect } from 'next/navigation';
import { auth0 } from '../../lib/auth0.js';
import { Account } from '../account.jsx';

export default async function Page() {
  if (!(await auth0.getSession())) redirect('/auth/login?returnTo=/messages');
  const { token } = await auth0.getAccessToken();
  const response = await fetch(`http://localhost:${process.env.API_PORT}/api/messages`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const answer = response.ok ? (await response.json()).message : `The API answered ${response.status}`;
  return (
    <Account>
      <p role="status">{answer}</p>
    </Account>
  );
}

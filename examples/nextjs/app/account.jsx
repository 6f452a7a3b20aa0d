import { auth0 } from '../lib/auth0.js';

/** Shows who is logged in. The links to /auth are not Next.js links: the browser must follow them. */
export async function Account({ children }) {
  const session = await auth0.getSession();
  if (!session) {
    return (
      <a className="button" href="/auth/login">
        Log in
      </a>
    );
  }
  return (
    <>
      <p>You are logged in as {session.user.email}.</p>
      <a className="button" href="/messages">
        Call the API
      </a>
      <a className="button" href="/auth/logout">
        Log out
      </a>
      {children}
    </>
  );
}

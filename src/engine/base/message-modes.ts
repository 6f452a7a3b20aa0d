// Response modes that post a message to another window: `web_message`, and that of older popups
// (docs/reference/wire/authorize.md).
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { AuthError } from '../../http/errors.ts';
import { jsonForScript } from '../../http/script.ts';
import { cspHash } from '../../http/server/application.ts';

/** Shows an error page instead of redirecting. */
export type ErrorPage = (ctx: Context, error: AuthError) => Promise<void>;

/**
 * Milliseconds until the popup closes itself. Openers close it when they receive the message, and poll whether the
 * user has closed it. If it closed itself at once, the poll could see that before the message arrives.
 */
const CLOSE_DELAY_MS = 2_000;

// docs/understand/decisions/login-pages.md#owptrue-without-a-response_mode-is-answered-in-the-popup
/** The response mode of `owp=true`, with which SDKs send no response_mode. */
export const POPUP_MODE = 'popup';

interface MessageMode {
  message(response: object): unknown;
  /** The target window, as a script expression. */
  target: string;
  /** Whether the application's page may frame the answer. */
  framed: boolean;
}

const MODES: Readonly<Record<string, MessageMode>> = {
  web_message: {
    message: (response) => ({ type: 'authorization_response', response }),
    target: 'window.opener||window.parent',
    framed: true,
  },
  [POPUP_MODE]: {
    // The final message of the SDK's popup library, as JSON text.
    message: (response) => JSON.stringify({ a: 'response', d: response }),
    target: 'window.opener',
    framed: false,
  },
};

/**
 * Registers the modes: a page that posts the response to its opener or parent, with the redirect_uri's origin as
 * target. The engine's own experimental mode is not used, because the page needs our headers.
 */
export function registerMessageModes(provider: Provider, errorPage: ErrorPage): void {
  for (const [name, mode] of Object.entries(MODES)) {
    provider.registerResponseMode(name, async (ctx, redirectUri, response) => {
      const { origin } = new URL(redirectUri);
      if (origin !== 'null') return answer(ctx, mode, origin, response);
      // A private-use scheme has no origin to limit the message to.
      const description = `${name} needs a redirect_uri with a web origin.`;
      return errorPage(ctx, new AuthError(400, 'invalid_request', description));
    });
  }
}

function answer(ctx: Context, mode: MessageMode, origin: string, response: object): void {
  const message = jsonForScript(mode.message(response));
  const script = `(function(){var target=${mode.target};if(target)target.postMessage(${message},${jsonForScript(origin)});if(window.opener)setTimeout(function(){window.close()},${CLOSE_DELAY_MS});})();`;
  ctx.status = 200;
  ctx.type = 'html';
  if (mode.framed) ctx.remove('X-Frame-Options');
  ctx.set('Cross-Origin-Opener-Policy', 'unsafe-none');
  ctx.set('Cross-Origin-Resource-Policy', 'cross-origin');
  ctx.set(
    'Content-Security-Policy',
    `default-src 'none'; script-src ${cspHash(script)}; frame-ancestors ${mode.framed ? origin : "'none'"}; base-uri 'none'; form-action 'none'`,
  );
  ctx.body = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Authorization response</title></head><body><script>${script}</script></body></html>`;
}

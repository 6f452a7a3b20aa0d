// Chooses the quickstart programs of an application: short programs with its real values, for SDKs that our tests
// run.
import { auth0Js, auth0Lock, auth0React, spaJs } from './browser-snippets.ts';
import { auth0Management, authJsMachine, curl, openIdClientMachine } from './machine-snippets.ts';
import type { QuickstartValues, Snippet } from './snippet.ts';
import { authJs, nextJs, oauth4webApi, openIdClient, openIdClientPublic } from './web-snippets.ts';

export type Kind = 'spa' | 'regular_web' | 'native' | 'non_interactive';

/** Returns the programs for an application of a kind. They read secrets from the environment and contain none. */
export function snippetsOf(kind: Kind, values: QuickstartValues): Snippet[] {
  switch (kind) {
    case 'spa':
      return [auth0React(values), spaJs(values), auth0Js(values), auth0Lock(values)];
    case 'native':
      return [openIdClientPublic(values), oauth4webApi(values)];
    case 'regular_web':
      return [nextJs(values), openIdClient(values), authJs(values)];
    case 'non_interactive':
      return [openIdClientMachine(values), authJsMachine(values), auth0Management(values), curl(values)];
  }
}

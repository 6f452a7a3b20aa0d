// An MCP server that keeps notes for users, and gives agents only what the user allowed them.
import {
  createMcpExpressApp,
  getOAuthProtectedResourceMetadataUrl,
  requireBearerAuth,
} from '@modelcontextprotocol/express';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer, requireScopes } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { resourceMetadata, tokenVerifier } from './tokens.js';

const { AUTH0_DOMAIN, MCP_PORT } = process.env;
const issuer = `https://${AUTH0_DOMAIN}/`;
const resource = new URL(`http://localhost:${MCP_PORT}/mcp`);
const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(resource);

/** The notes of each user, in memory. */
const notes = new Map();
const notesOf = ({ http }) => notes.get(http.authInfo.extra.user) ?? [];
const answer = (text) => ({ content: [{ type: 'text', text }] });

function createServer() {
  const server = new McpServer({ name: 'notes', version: '1.0.0' });
  server.registerTool('list_notes', { description: 'Lists the notes of the user' }, (context) =>
    answer(notesOf(context).join('\n') || 'There are no notes.'),
  );
  server.registerTool(
    'add_note',
    {
      description: 'Adds a note',
      inputSchema: z.object({ text: z.string().max(1000) }),
      // Who lacks one is answered 403 `insufficient_scope`, and can ask the user for more.
      scopeChallenge: requireScopes('notes:read', 'notes:write'),
    },
    ({ text }, context) => {
      notes.set(context.http.authInfo.extra.user, [...notesOf(context), text]);
      return answer('The note is added.');
    },
  );
  return server;
}

const app = createMcpExpressApp();
app.get(new URL(resourceMetadataUrl).pathname, (_request, response) => {
  response
    .set('access-control-allow-origin', '*')
    .json(resourceMetadata(resource.href, issuer, ['notes:read', 'notes:write']));
});
app.use(
  resource.pathname,
  requireBearerAuth({
    verifier: tokenVerifier(resource.href, issuer),
    requiredScopes: ['notes:read'],
    resourceMetadataUrl,
  }),
);
const handle = toNodeHandler(createMcpHandler(createServer));
app.all(resource.pathname, (request, response) => handle(request, response, request.body));
app.listen(MCP_PORT, 'localhost', (error) => {
  if (error) throw error;
  console.log(`Agents find the tools at ${resource.href}`);
});

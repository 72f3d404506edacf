// An OpenID provider and an imitation of GitHub on loopback, for tests. Everybody's password is good.
// Prints one line of JSON with the URLs of both. POST /test/rotate replaces the provider's keys;
// POST /test/forge/KIND replaces the next ID token by one that a client must refuse.
import {
  createHmac, createPrivateKey, createSign, generateKeyPairSync, randomUUID,
} from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const SECRET = process.env.CLIENT_SECRET;

function newKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' };
}

function findAccount(ctx, id) {
  const mail = { email: `${id}@example.edu`, email_verified: !id.startsWith('unverified') };
  return { accountId: id, claims: () => ({ sub: id, name: `Person ${id}`, ...mail }) };
}

function makeProvider(issuer, authMethod, options) {
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'ladderboard',
      client_secret: SECRET,
      redirect_uris: ['http://127.0.0.1/sign-in/test/callback'],
      token_endpoint_auth_method: authMethod,
    }],
    cookies: { keys: [randomUUID()] },
    pkce: { required: () => true },
    findAccount,
    ...options,
  });
  // The port of the server under test is not known yet.
  provider.Client.prototype.redirectUriAllowed = (uri) => new URL(uri).hostname === '127.0.0.1';
  const { issue } = provider.IdToken.prototype;
  provider.IdToken.prototype.issue = async function forgeNext(...options) {
    const token = await issue.apply(this, options);
    const kind = forged.shift();
    return kind ? forge(kind, token) : token;
  };
  // Its pages load a font from elsewhere; tests use loopback only.
  provider.use(async (ctx, next) => {
    await next();
    if (typeof ctx.body === 'string') ctx.body = ctx.body.replace(/@import url\([^)]*\);?/g, '');
  });
  return provider;
}

const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
const decode = (part) => JSON.parse(Buffer.from(part, 'base64url'));
const rsa = (text, key) => createSign('sha256').update(text).sign(key, 'base64url');
const hmac = (text) => createHmac('sha256', SECRET).update(text).digest('base64url');

// Returns an ID token that is right but for what the kind says.
function forge(kind, token) {
  const [head, claims] = token.split('.').slice(0, 2).map(decode);
  const own = createPrivateKey({ key: signingKey, format: 'jwk' });
  const make = (header, payload, sign) => {
    const text = `${encode(header)}.${encode(payload)}`;
    return `${text}.${sign(text)}`;
  };
  return {
    audience: () => make(head, { ...claims, aud: 'another-client' }, (text) => rsa(text, own)),
    issuer: () => make(head, { ...claims, iss: 'https://evil.example' }, (text) => rsa(text, own)),
    key: () => make(head, claims, (text) => rsa(text, createPrivateKey({ key: newKey(), format: 'jwk' }))),
    none: () => make({ alg: 'none' }, claims, () => ''),
    payload: () => make(head, { ...claims, sub: 'root' }, () => token.split('.')[2]),
    right: () => make(head, claims, (text) => rsa(text, own)),
    secret: () => make({ alg: 'HS256' }, claims, hmac),
  }[kind]();
}

async function listen(handle) {
  const server = createServer(handle);
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${server.address().port}`;
}

const forged = []; // the kinds of the next ID tokens
let signingKey;
let openid;
let github;

const openidUrl = await listen((request, response) => {
  if (request.method === 'POST' && request.url === '/test/rotate') {
    openid = makeOpenid();
    response.end();
  } else if (request.method === 'POST' && request.url.startsWith('/test/forge/')) {
    forged.push(request.url.split('/').at(-1));
    response.end();
  } else {
    openid.callback()(request, response);
  }
});

function makeOpenid() {
  signingKey = newKey();
  return makeProvider(openidUrl, 'client_secret_basic', {
    jwks: { keys: [signingKey] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  });
}

const githubUrl = await listen(async (request, response) => {
  if (!request.url.startsWith('/api/')) {
    github.callback()(request, response);
    return;
  }
  const value = (request.headers.authorization ?? '').replace(/^Bearer /, '');
  const token = value && await github.AccessToken.find(value);
  if (!token) {
    response.writeHead(401).end();
    return;
  }
  const login = token.accountId;
  const user = { id: Number(login.replace(/\D/g, '')), login, name: null };
  const mails = [
    { email: `${login}@example.com`, primary: false, verified: true },
    { email: `${login}@example.org`, primary: true, verified: true },
  ];
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify(request.url === '/api/user' ? user : mails));
});

openid = makeOpenid();
github = makeProvider(githubUrl, 'client_secret_post', {
  jwks: { keys: [newKey()] },
  routes: { authorization: '/login/oauth/authorize', token: '/login/oauth/access_token' },
  scopes: ['read:user', 'user:email'],
});
console.log(JSON.stringify({ openid: openidUrl, github: githubUrl }));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0)); // the tests have ended

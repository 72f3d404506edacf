"""Signing in with OpenID Connect or GitHub: the authorization code flow with PKCE."""

from ladderboard.server._sign_in._flow import SIGN_IN_COOKIE, SignInFlow, StartedSignIn

__all__ = ["SIGN_IN_COOKIE", "SignInFlow", "StartedSignIn"]

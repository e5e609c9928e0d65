"""Mutation testing: does a unit test notice when one operator, number or condition of the money's code is another?"""
